#!/usr/bin/env python3
"""Writes what Keras and PIL make of a small picture, for the tests of changes of pictures:

    KERAS_BACKEND=numpy picture_cases.py tests/unit/data/pictures/picture_references.h

Keras 3.15 with NumPy, and Pillow. picture_changes_test.cpp makes the picture by the same formula."""

import itertools
import sys

import numpy as np
from PIL import Image
from keras import layers, ops

HEIGHT, WIDTH, CHANNELS = 5, 7, 2


def picture():
    values = np.zeros((HEIGHT, WIDTH, CHANNELS), np.float32)
    for row in range(HEIGHT):
        for column in range(WIDTH):
            for channel in range(CHANNELS):
                values[row, column, channel] = (row * 37 + column * 11 + channel * 53 + row * column * 7) % 256
    return values


def through(layer, values):
    return np.asarray(layer(values[None], training=True))[0]


def resized_by_pil(values, height, width):
    return np.stack([np.asarray(Image.fromarray(values[..., channel], "F").resize((width, height), Image.BILINEAR))
                     for channel in range(CHANNELS)], axis=-1)


def cases():
    values = picture()
    resize = lambda height, width, kind: np.asarray(ops.image.resize(values, (height, width), interpolation=kind))
    yield "bilinear_smaller", resize(3, 4, "bilinear")
    yield "bilinear_larger", resize(8, 9, "bilinear")
    yield "nearest_smaller", resize(3, 4, "nearest")
    yield "antialiased_smaller", resized_by_pil(values, 2, 3)
    yield "antialiased_larger", resized_by_pil(values, 8, 9)
    yield "center_crop", np.asarray(layers.CenterCrop(3, 4)(values))
    for mode in ("reflect", "nearest", "constant"):
        yield f"rotated_{mode}", through(layers.RandomRotation((0.1, 0.1), fill_mode=mode), values)
    yield "shifted", through(layers.RandomTranslation((0.2, 0.2), (-0.1, -0.1), fill_mode="reflect"), values)
    yield "zoomed", through(layers.RandomZoom((-0.3, -0.3), fill_mode="reflect"), values)
    for mode in ("reflect", "constant"):
        shear = layers.RandomShear(0.5, 0.5, fill_mode=mode)
        yield f"sheared_{mode}", np.asarray(shear.transform_images(
            values[None], {"shear_factor": np.array([[0.3, -0.2]], np.float32)}, training=True))[0]
    corners = np.array([[0, 0], [WIDTH - 1, 0], [0, HEIGHT - 1], [WIDTH - 1, HEIGHT - 1]], np.float32)
    moved = corners * np.array([[1, 1], [0.8, 1], [1, 1.2], [1.1, 0.7]], np.float32)
    yield "in_perspective", np.asarray(layers.RandomPerspective().transform_images(values[None], {
        "apply_perspective": np.array([True]), "start_points": corners[None], "end_points": moved[None]}))[0]
    contrast = layers.RandomContrast((0.5, 0.5), value_range=(0, 255))
    yield "contrast", np.asarray(contrast.transform_images(
        values[None], {"contrast_factor": np.full((1, 1, 1, 1), 1.5, np.float32)}, training=True))[0]
    normalized = layers.Normalization(mean=[100.0, 120.0], variance=[2500.0, 900.0])
    yield "standardized", np.asarray(normalized(values[None]))[0]


def colors():
    """Three channels, as reference_colors() of picture_colors_test.cpp makes them."""
    values = np.zeros((4, 5, 3), np.float32)
    for row in range(4):
        for column in range(5):
            for channel in range(3):
                values[row, column, channel] = (row * 61 + column * 23 + channel * 97 + row * column * channel * 5) % 256
    values[0, 0] = 0
    values[0, 1] = 128
    values[3, 4] = 255
    return values


def color_cases():
    values = colors()
    one = lambda number: np.full((1, 1, 1, 1), number, np.float32)
    apply = lambda layer, made, pictures=values: np.asarray(layer.transform_images(pictures[None], made))[0]
    yield "grayscale", apply(layers.RandomGrayscale(1.0), one(1).astype(bool))
    yield "color_degeneration", apply(layers.RandomColorDegeneration(0.3), {"factor": one(0.3)})
    for name, turns in (("hue_forward", 0.2), ("hue_back", -0.3)):
        yield name, apply(layers.RandomHue(0.5), {"factor": np.array([turns], np.float32)})
    for name, factor in (("less_saturation", 0.2), ("more_saturation", 0.7)):
        scale = np.array([factor / (1 - factor + 1e-7)], np.float32)
        yield name, apply(layers.RandomSaturation(0.5, value_range=(0, 1)), {"factor": scale}, values / 255) * 255
    yield "inverted", apply(layers.RandomInvert(1.0), {"apply_inversion": np.array([True])})
    for bits in (1, 3, 8):
        yield f"posterized_{bits}", apply(layers.RandomPosterization((1, 8)), {"shift_factor": np.array([8 - bits], np.uint8)})
    yield "solarized", apply(layers.Solarization(0.5, 0.5), {"additions": one(25.5), "thresholds": one(153)})
    yield "stretched", np.asarray(layers.AutoContrast()((values * 0.5 + 20)[None]))[0]
    yield "equalized", np.asarray(layers.Equalization()(values[None]))[0]
    for name, factor in (("smooth", 0.1), ("sharp", 0.9)):
        yield name, apply(layers.RandomSharpness(0.5), {"factor": np.array([factor], np.float32)})
    blur = {"should_apply_blur": np.array([True]), "blur_factor": np.array([0.8, 0.8], np.float32)}
    # Its kernel_size begins with the columns.
    yield "blurred", apply(layers.RandomGaussianBlur(1.0, kernel_size=(3, 5)), blur)


def main():
    lines = ["// Written by scripts/tests/picture_cases.py; do not edit.", "#pragma once", "", "#include <vector>", "",
             "namespace holdfast::references {", ""]
    for name, values in itertools.chain(cases(), color_cases()):
        assert np.all(np.isfinite(values)), name
        numbers = ", ".join(f"{float(value):.9g}F" if not float(value).is_integer() else f"{int(value)}"
                            for value in np.ravel(values))
        lines.append(f"// {' x '.join(map(str, values.shape))}")
        lines.append(f"inline const std::vector<float> {name} = {{{numbers}}};")
        lines.append("")
    lines.append("}  // namespace holdfast::references")
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(lines) + "\n")


main()
