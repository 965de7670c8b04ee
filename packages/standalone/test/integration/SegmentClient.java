import com.segment.analytics.Analytics;
import com.segment.analytics.Callback;
import com.segment.analytics.messages.AliasMessage;
import com.segment.analytics.messages.GroupMessage;
import com.segment.analytics.messages.IdentifyMessage;
import com.segment.analytics.messages.Message;
import com.segment.analytics.messages.PageMessage;
import com.segment.analytics.messages.TrackMessage;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Segment's Java client, unmodified: six calls of a visitor who becomes a person (`language-clients.test.ts`). */
public class SegmentClient {
  public static void main(String[] arguments) throws Exception {
    String user = System.getenv("SLUICE_USER");
    CountDownLatch taken = new CountDownLatch(6);
    Analytics analytics =
        Analytics.builder(System.getenv("SLUICE_WRITE_KEY"))
            .endpoint(System.getenv("SLUICE_INTAKE"))
            .callback(
                new Callback() {
                  public void success(Message message) {
                    taken.countDown();
                  }

                  public void failure(Message message, Throwable reason) {
                    System.err.println(message + ": " + reason);
                    System.exit(1);
                  }
                })
            .build();
    analytics.enqueue(
        TrackMessage.builder("looked").anonymousId(user + "-visitor").properties(Map.of("k", 1)));
    analytics.enqueue(AliasMessage.builder(user + "-visitor").userId(user));
    analytics.enqueue(
        IdentifyMessage.builder()
            .userId(user)
            .traits(Map.of("email", user + "@example.com", "plan", "pro")));
    analytics.enqueue(
        PageMessage.builder("Home").userId(user).properties(Map.of("url", "https://shop.example/")));
    analytics.enqueue(
        GroupMessage.builder("company-" + user).userId(user).traits(Map.of("name", "Acme")));
    analytics.enqueue(TrackMessage.builder("last").userId(user));
    analytics.flush();
    if (!taken.await(20, TimeUnit.SECONDS)) {
      System.err.println("not answered");
      System.exit(1);
    }
    analytics.shutdown();
    System.exit(0);
  }
}
