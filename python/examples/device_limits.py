"""Device limits and growth, as one sets them for GPUs in TensorFlow; here they hold for the memory of the processors."""
import plimsoll as tf

cpus = tf.config.list_physical_devices("CPU")
gpus = tf.config.list_physical_devices("GPU")
print(len(cpus), "physical CPUs,", len(gpus), "physical GPUs")

# Memory grows as it is needed, up to a limit for each of two logical devices.
for cpu in cpus:
    tf.config.set_memory_growth(cpu, True)
tf.config.set_logical_device_configuration(
    cpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit="64MiB"), tf.config.LogicalDeviceConfiguration(memory_limit="16MiB")])
logical_cpus = tf.config.list_logical_devices("CPU")
print(len(cpus), "physical CPUs,", len(logical_cpus), "logical CPUs")
assert [device.memory_limit for device in logical_cpus] == [64 << 20, 16 << 20]

try:
    tf.config.set_memory_growth(cpus[0], False)
except RuntimeError as e:  # It must be set before the devices have been used.
    print(e)

with tf.device("/CPU:1"):
    a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    c = tf.matmul(a, b)
print(c)
assert c.device == "CPU:1" and c.tolist() == [[22.0, 28.0], [49.0, 64.0]]

# The limit holds, and says what would do.
with tf.device("/CPU:1"):
    try:
        tf.zeros([8 << 20])
    except tf.OutOfMemory as e:  # A MemoryError.
        print(f"refused: {tf.format_bytes(e.requested)} of {tf.format_bytes(e.limit)}; {tf.format_bytes(e.smallest_sufficient_limit)} would do")
        assert e.limit == 16 << 20 and e.smallest_sufficient_limit > e.limit
    else:
        raise AssertionError("a limit that does not hold")

big = tf.zeros([8 << 20])  # On the first device it fits.
print(tf.memory_summary())
assert tf.config.get_memory_info("CPU:0")["current"] >= big.nbytes
