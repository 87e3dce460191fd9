"""A Keras classifier with checkpoints, as one writes it for TensorFlow: only the import is another, and the budget is new."""
import os
import tempfile

import numpy as np

import plimsoll as pl
from plimsoll import layers

# Three kinds of small images: a bright row, a bright column, a bright diagonal.
rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 600)
images = rng.normal(0, 0.3, (600, 8, 8, 1)).astype("float32")
for image, label in zip(images, labels):
    place = rng.integers(0, 8)
    if label == 0:
        image[place] += 1
    elif label == 1:
        image[:, place] += 1
    else:
        image[range(8), range(8)] += 1
(train_images, test_images), (train_labels, test_labels) = np.split(images, [500]), np.split(labels, [500])


def create_model():
    model = pl.Sequential([
        layers.Conv2D(8, (3, 3), activation="relu", padding="same", input_shape=(8, 8, 1), seed=1),
        layers.MaxPooling2D((2, 2)),
        layers.Flatten(),
        layers.Dense(32, activation="relu", seed=2),
        layers.Dropout(0.2, seed=3),
        layers.Dense(3, seed=4),
    ])
    model.compile(optimizer="adam", loss=pl.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


model = create_model()
model.summary()

# Before anything runs: what training takes, to the byte.
forecast = model.forecast(batch_size=32)
print(f"training takes {pl.format_bytes(forecast.peak_bytes)}, and runs in {pl.format_bytes(forecast.smallest_budget)}")

folder = tempfile.mkdtemp()
checkpoint_path = os.path.join(folder, "cp-{epoch:04d}.ckpt")
cp_callback = pl.callbacks.ModelCheckpoint(filepath=checkpoint_path, verbose=0, save_weights_only=True)
history = model.fit(train_images, train_labels, epochs=8, batch_size=32, validation_data=(test_images, test_labels),
                    callbacks=[cp_callback], verbose=2, budget="2MiB")
assert history.peak_bytes <= 2 << 20

# A new model has not learned anything; with the weights of the latest checkpoint it has.
model = create_model()
loss, accuracy = model.evaluate(test_images, test_labels, verbose=2)
print(f"untrained model, accuracy: {100 * accuracy:5.2f}%")
latest = pl.latest_checkpoint(folder)
model.load_weights(latest)
loss, accuracy = model.evaluate(test_images, test_labels, verbose=2)
print(f"restored model, accuracy: {100 * accuracy:5.2f}%")
assert accuracy > 0.9 and abs(accuracy - history.history["val_accuracy"][-1]) < 1e-6

probability_model = pl.Sequential([model, layers.Softmax()])
predictions = probability_model.predict(test_images)
assert predictions.shape == (100, 3) and abs(float(predictions[0].sum()) - 1) < 1e-5
