"""A graph with placeholders, a session and a saver over a time series, as one writes it for TensorFlow 1."""
import os
import tempfile

import numpy as np

import plimsoll as tf

tf.reset_default_graph()
tf.config.set_seed(1)
look_back, hidden = 16, 24
series = np.sin(np.arange(600) * 0.2) + 0.3 * np.sin(np.arange(600) * 0.05)
windows = np.stack([series[i:i + look_back] for i in range(len(series) - look_back)]).astype("float32")
targets = series[look_back:, None].astype("float32")

graph = tf.Graph()
with graph.as_default():
    with tf.name_scope("input"):
        x = tf.placeholder(tf.float32, [None, look_back], name="x")
        y = tf.placeholder(tf.float32, [None, 1], name="y")
    with tf.name_scope("network"):
        w1 = tf.Variable(tf.random_normal([look_back, hidden], stddev=0.2, seed=2), name="w1")
        b1 = tf.Variable(tf.zeros([hidden]), name="b1")
        w2 = tf.Variable(tf.random_normal([hidden, 1], stddev=0.2, seed=3), name="w2")
        b2 = tf.Variable(tf.zeros([1]), name="b2")
        prediction = tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) + b2
    loss = tf.reduce_mean(tf.square(prediction - y))
    train_step = tf.train.AdamOptimizer(0.01).minimize(loss)
    init = tf.global_variables_initializer()

saver = tf.Saver(max_to_keep=2)
folder = tempfile.mkdtemp()
with tf.Session(graph=graph, budget="1MiB") as sess:
    sess.run(init)
    first = sess.run(loss, feed_dict={x: windows, y: targets}).item()
    for epoch in range(30):
        for begin in range(0, len(windows), 64):
            batch = {x: windows[begin:begin + 64], y: targets[begin:begin + 64]}
            _, value = sess.run([train_step, loss], feed_dict=batch)
        if epoch % 10 == 9:
            path = saver.save(sess, os.path.join(folder, "model.ckpt"), global_step=epoch)
            print(f"epoch {epoch}: loss {value.item():.5f}, saved {os.path.basename(path)}")
    last = sess.run(loss, feed_dict={x: windows, y: targets}).item()
    print(sess.memory_report())
assert last < first / 20

with tf.Session(graph=graph) as sess:
    saver.restore(sess, tf.latest_checkpoint(folder))
    assert sess.run(loss, feed_dict={x: windows, y: targets}).item() == last
    # From what it predicts it goes on by itself.
    window = list(windows[-1])
    for _ in range(20):
        window.append(float(sess.run(prediction, {x: np.array([window[-look_back:]], "float32")})))
    assert np.isfinite(window).all()
print(f"loss {first:.4f} before, {last:.4f} after; restored the same")
