import site.ycsb.Utils;
import site.ycsb.generator.*;

/** Draws from YCSB's generators: `name number` lines of how often each number came, and hashes. */
public class Draws {
  interface Draw { long next(); }

  static void count(String name, int draws, int numbers, Draw draw) {
    long[] counts = new long[numbers];
    for (int i = 0; i < draws; i++) {
      long number = draw.next();
      if (number >= 0 && number < numbers) counts[(int) number]++;
    }
    StringBuilder line = new StringBuilder(name);
    for (long one : counts) line.append(' ').append(one);
    System.out.println(line);
  }

  public static void main(String[] arguments) {
    int draws = Integer.parseInt(arguments[0]), numbers = Integer.parseInt(arguments[1]);
    StringBuilder line = new StringBuilder("hash");
    for (long i = 0; i < numbers; i++) line.append(' ').append(Utils.fnvhash64(i * i * i * 977));
    System.out.println(line);
    ScrambledZipfianGenerator scrambled = new ScrambledZipfianGenerator(0, numbers - 1);
    count("scrambled_zipfian", draws, numbers, () -> scrambled.nextValue());
    ZipfianGenerator zipfian = new ZipfianGenerator(0, numbers - 1);
    count("zipfian", draws, numbers, () -> zipfian.nextValue());
    CounterGenerator counter = new CounterGenerator(numbers);
    SkewedLatestGenerator latest = new SkewedLatestGenerator(counter);
    count("latest", draws, numbers, () -> latest.nextValue());
    HotspotIntegerGenerator hotspot = new HotspotIntegerGenerator(0, numbers - 1, 0.2, 0.8);
    count("hotspot", draws, numbers, () -> hotspot.nextValue());
    ExponentialGenerator exponential = new ExponentialGenerator(95, numbers * 0.8571428571);
    count("exponential", draws, numbers, () -> exponential.nextValue().longValue());
    UniformLongGenerator uniform = new UniformLongGenerator(0, numbers - 1);
    count("uniform", draws, numbers, () -> uniform.nextValue());
  }
}
