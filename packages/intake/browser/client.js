/*
 * Sluice's client for web pages: identify, track, page, screen, group, alias, reset, ready.
 * One call is one request of type text/plain, which needs no preflight; a page that goes away sends
 * what is left by sendBeacon. Who the visitor is stays in localStorage under the names that the
 * other clients of this protocol use, so that changing the client keeps the visitor.
 *
 * A call becomes JSON when it is made. What JSON cannot hold (a BigInt, an object that contains itself) costs that call
 * alone, with a warning on the console: the page goes on, and so do the calls behind it.
 */
(function () {
  var writeKey = __WRITE_KEY__;
  var origin = '__ORIGIN__';
  var paths = { identify: 'i', track: 't', page: 'p', screen: 's', group: 'g', alias: 'a' };
  var TRIES_MAX = 8;
  var REQUEST_TIMEOUT_MS = 30000;
  var waiting = window.analytics;
  if (waiting && waiting.initialized) return;

  /* Storage may be forbidden: then the visitor is known for this page only. */
  var memory = {};
  function read(name) {
    try {
      var text = window.localStorage.getItem(name);
      return text === null ? memory[name] : JSON.parse(text);
    } catch {
      return memory[name];
    }
  }
  function write(name, value) {
    memory[name] = value;
    try {
      if (value === undefined) window.localStorage.removeItem(name);
      else window.localStorage.setItem(name, JSON.stringify(value));
    } catch {
      /* see above */
    }
  }

  function warn(type, error) {
    /* The developer of the page has no other place to be told. */
    var text = 'analytics: a call of ' + type + ' is dropped, it cannot be sent:';
    try {
      // oxlint-disable-next-line no-console
      console.warn(text, error);
    } catch {
      /* Nothing that a page makes of its console or throws may stop the calls behind this one. */
    }
  }

  function newId() {
    if (window.crypto && window.crypto.randomUUID) return window.crypto.randomUUID();
    return 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, function () {
      return Math.floor(Math.random() * 16).toString(16);
    });
  }
  function anonymousId() {
    var id = read('ajs_anonymous_id');
    if (!id || typeof id !== 'string') write('ajs_anonymous_id', (id = newId()));
    return id;
  }

  function pageProperties() {
    return {
      path: location.pathname,
      referrer: document.referrer,
      search: location.search,
      title: document.title,
      url: location.href,
    };
  }

  /* One at a time, so that calls arrive in the order in which they were made. */
  var queue = [];
  var isSending = false;
  var isLeaving = false;
  function send(type, fields) {
    var now = new Date().toISOString();
    var call = {
      type: type,
      messageId: 'sluice-' + newId(),
      timestamp: now,
      anonymousId: anonymousId(),
      userId: read('ajs_user_id') || null,
      writeKey: writeKey,
      context: {
        page: pageProperties(),
        userAgent: navigator.userAgent,
        locale: navigator.language,
        library: { name: 'sluice-browser', version: '1.0.0' },
      },
    };
    for (var key in fields) call[key] = fields[key];
    /* As it is now, whatever the page does with its objects later; and here it throws, if it does. */
    queue.push({ call: JSON.parse(JSON.stringify(call)), tries: 0 });
    /* A request that a page begins while it goes away is cut. */
    if (isLeaving) sendBeacons();
    else next();
  }
  function next() {
    var first = queue[0];
    if (isSending || !first) return;
    isSending = true;
    var hasEnded = false;
    function end(isTaken) {
      if (hasEnded) return;
      hasEnded = true;
      isSending = false;
      if (isTaken || ++first.tries >= TRIES_MAX) {
        if (queue[0] === first) queue.shift();
        next();
      } else {
        setTimeout(next, Math.min(60000, 500 * Math.pow(2, first.tries)));
      }
    }
    try {
      post(first.call, end);
    } catch (error) {
      /* Such as a page's own XMLHttpRequest: the queue must not stand still for it. */
      warn(first.call.type, error);
      end(false);
    }
  }
  function bodyOf(call) {
    call.sentAt = new Date().toISOString();
    return JSON.stringify(call);
  }
  /* 4xx will not get better; 429, 5xx and no answer may. */
  function post(call, done) {
    var request = new XMLHttpRequest();
    request.open('POST', origin + '/v1/' + paths[call.type]);
    request.timeout = REQUEST_TIMEOUT_MS;
    request.setRequestHeader('Content-Type', 'text/plain');
    request.onloadend = function () {
      done(request.status > 0 && request.status < 500 && request.status !== 429);
    };
    request.send(bodyOf(call));
  }
  /* What is under way is sent again too; its messageId makes it count once. */
  function sendBeacons() {
    if (!navigator.sendBeacon) return;
    queue = queue.filter(function (entry) {
      try {
        var body = new Blob([bodyOf(entry.call)], { type: 'text/plain' });
        return !navigator.sendBeacon(origin + '/v1/' + paths[entry.call.type], body);
      } catch (error) {
        warn(entry.call.type, error);
        return true;
      }
    });
  }
  window.addEventListener('pagehide', function () {
    isLeaving = true;
    sendBeacons();
  });
  /* Back from where the browser keeps pages that were left. */
  window.addEventListener('pageshow', function () {
    isLeaving = false;
    next();
  });

  var ready = [];
  var analytics = {
    initialized: true,
    identify: function (userId, traits) {
      if (userId !== null && typeof userId === 'object') {
        traits = userId;
        userId = undefined;
      }
      if (userId !== undefined && userId !== null) write('ajs_user_id', String(userId));
      send('identify', { traits: traits || {} });
      return analytics;
    },
    track: function (event, properties) {
      send('track', { event: event, properties: properties || {} });
      return analytics;
    },
    group: function (groupId, traits) {
      send('group', { groupId: String(groupId), traits: traits || {} });
      return analytics;
    },
    alias: function (userId, previousId) {
      var before = previousId || read('ajs_user_id') || anonymousId();
      write('ajs_user_id', String(userId));
      send('alias', { previousId: String(before) });
      return analytics;
    },
    reset: function () {
      write('ajs_user_id', undefined);
      write('ajs_anonymous_id', undefined);
      return analytics;
    },
    ready: function (callback) {
      if (typeof callback === 'function') ready.push(callback);
      setTimeout(function () {
        ready.splice(0).forEach(function (each) {
          try {
            each();
          } catch (error) {
            setTimeout(function () {
              throw error;
            }, 0);
          }
        });
      }, 0);
      return analytics;
    },
    load: function () {
      return analytics;
    },
    push: function (entry) {
      try {
        var method = analytics[entry[0]];
        if (typeof method === 'function') method.apply(analytics, entry.slice(1));
      } catch (error) {
        warn('push', error);
      }
    },
  };
  ['page', 'screen'].forEach(function (type) {
    /* page(), page(name), page(properties), page(name, properties), page(category, name, properties) */
    analytics[type] = function () {
      var texts = [];
      var properties = {};
      for (var index = 0; index < arguments.length; index++) {
        var value = arguments[index];
        if (typeof value === 'string') texts.push(value);
        else if (value && typeof value === 'object') properties = value;
      }
      var all = type === 'page' ? pageProperties() : {};
      for (var key in properties) all[key] = properties[key];
      var fields = { properties: all };
      if (texts.length > 1) all.category = texts[0];
      if (texts.length > 0) fields.name = texts[texts.length - 1];
      send(type, fields);
      return analytics;
    };
  });

  /* Whatever a page hands over, its own script goes on. */
  Object.keys(paths).forEach(function (type) {
    var method = analytics[type];
    analytics[type] = function () {
      try {
        return method.apply(analytics, arguments);
      } catch (error) {
        warn(type, error);
        return analytics;
      }
    };
  });

  window.analytics = analytics;
  if (waiting && waiting.length) {
    for (var index = 0; index < waiting.length; index++) analytics.push(waiting[index]);
  }
})();
