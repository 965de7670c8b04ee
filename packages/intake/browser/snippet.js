/*
 * Sluice in a web page. Paste it into <head>, then: analytics.load('WRITE KEY'); analytics.page();
 * Calls made before the client has loaded wait and are sent in order.
 */
(function () {
  var analytics = (window.analytics = window.analytics || []);
  if (analytics.load || analytics.initialized) return;
  var methods = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'reset', 'ready'];
  for (var index = 0; index < methods.length; index++) {
    (function (method) {
      analytics[method] = function () {
        analytics.push([method].concat(Array.prototype.slice.call(arguments)));
        return analytics;
      };
    })(methods[index]);
  }
  analytics.load = function (writeKey) {
    var script = document.createElement('script');
    script.async = true;
    script.src =
      '__ORIGIN__/v1/analytics-js/snippet/' + encodeURIComponent(writeKey) + '/analytics.min.js';
    document.head.appendChild(script);
    return analytics;
  };
})();
