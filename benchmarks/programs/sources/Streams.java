import java.util.Arrays;
import java.util.stream.IntStream;

/** Parallel streams over arrays larger than the caches: fill, smooth in turns, sum, and sort a part. */
class Streams {
    public static void main(String[] arguments) {
        int length = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 6_000_000;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 2;
        double[] now = new double[length], next = new double[length];
        IntStream.range(0, length).parallel().forEach(k -> now[k] = (k * 31L) % 1009);
        for (int round = 0; round < rounds; round++) {
            double[] from = round % 2 == 0 ? now : next, to = round % 2 == 0 ? next : now;
            IntStream.range(1, length - 1).parallel().forEach(k -> to[k] = (from[k - 1] + from[k] + from[k + 1]) / 3);
        }
        double sum = Arrays.stream(now).parallel().sum();
        double[] part = IntStream.range(0, length / 64).parallel().mapToDouble(k -> now[k * 64]).boxed().parallel()
                .sorted().mapToDouble(Double::doubleValue).toArray();
        System.out.printf("checked %.3f %.3f%n", sum, part[part.length / 2]);
    }
}
