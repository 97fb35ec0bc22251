// Reads streaming segments by the read handle of Pulsar's own offloader, as a broker would if one did.
//
//   ReadSegments OBJECTS LEDGER SEGMENT[,SEGMENT] FIRST-LAST...
//
// OBJECTS is a folder with <segment> and <segment>-index. For each range a line "FIRST-LAST", then a line
// for each entry that came: ledger, entry, length, SHA-256; or "failed" with what was thrown, or "no answer".
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import org.apache.bookkeeper.client.api.*;
import org.apache.bookkeeper.common.util.OrderedScheduler;
import org.apache.bookkeeper.mledger.LedgerOffloaderStatsDisable;
import org.apache.bookkeeper.mledger.offload.jcloud.impl.*;
import org.apache.bookkeeper.mledger.offload.jcloud.provider.*;
import org.apache.bookkeeper.mledger.proto.MLDataFormats.*;
import org.jclouds.blobstore.BlobStore;

public class ReadSegments {
    private static final String BUCKET = "segments";
    private static final int PATIENCE_S = 6;

    public static void main(String[] asked) throws Exception {
        Path objects = Path.of(asked[0]);
        long ledger = Long.parseLong(asked[1]);
        List<UUID> segments = Arrays.stream(asked[2].split(",")).map(UUID::fromString).toList();
        TieredStorageConfiguration settings = TieredStorageConfiguration.create(
            Map.of("managedLedgerOffloadDriver", "transient", "managedLedgerOffloadBucket", BUCKET));
        BlobStore store = settings.getBlobStore();
        store.createContainerInLocation(null, BUCKET);
        OffloadContext.Builder context = OffloadContext.newBuilder().setComplete(true);
        for (UUID segment : segments) {
            put(store, objects, segment.toString());
            put(store, objects, segment + "-index");
            context.addOffloadSegment(OffloadSegment.newBuilder()
                .setUidMsb(segment.getMostSignificantBits()).setUidLsb(segment.getLeastSignificantBits()).setComplete(true));
        }
        OrderedScheduler threads = OrderedScheduler.newSchedulerBuilder().numThreads(1).name("reader").build();
        BlobStoreManagedLedgerOffloader offloader = BlobStoreManagedLedgerOffloader.create(
            settings, Map.of(), threads, threads, LedgerOffloaderStatsDisable.INSTANCE, new OffsetsCache());
        // It would open a store of its own, and an empty one.
        Field stores = BlobStoreManagedLedgerOffloader.class.getDeclaredField("blobStores");
        stores.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<Object, BlobStore> known = (Map<Object, BlobStore>) stores.get(offloader);
        known.put(settings.getBlobStoreLocation(), store);
        ReadHandle handle = offloader.readOffloaded(ledger, context.build(),
            Map.of("bucket", BUCKET, "ManagedLedgerName", "public/default/persistent/segments")).get(PATIENCE_S, TimeUnit.SECONDS);
        for (String range : Arrays.asList(asked).subList(3, asked.length)) read(handle, range);
        System.out.flush();
        Runtime.getRuntime().halt(0); // a reader that looks for more never ends
    }

    private static void put(BlobStore store, Path objects, String key) throws IOException {
        byte[] data = Files.readAllBytes(objects.resolve(key));
        store.putBlob(BUCKET, store.blobBuilder(key).payload(data).contentLength(data.length)
            .userMetadata(Map.of("s3managedledgeroffloaderformatversion", "1")).build());
    }

    private static void read(ReadHandle handle, String range) throws Exception {
        String[] ends = range.split("-");
        System.out.println(range);
        try (LedgerEntries found = handle.readAsync(Long.parseLong(ends[0]), Long.parseLong(ends[1])).get(PATIENCE_S, TimeUnit.SECONDS)) {
            for (LedgerEntry entry : found) {
                byte[] payload = entry.getEntryBytes();
                String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(payload));
                System.out.println(entry.getLedgerId() + " " + entry.getEntryId() + " " + payload.length + " " + digest);
            }
        } catch (ExecutionException failed) {
            System.out.println("failed " + String.valueOf(failed.getCause()).replace("\n", " "));
        } catch (TimeoutException late) {
            System.out.println("no answer");
        }
    }
}
