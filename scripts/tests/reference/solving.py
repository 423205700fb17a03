"""What Keras computes for a case: outputs, gradients by central differences, and how far rounding may move them."""

import numpy as np

from reference.cases import draw


def as_text(array):
    array = np.asarray(array)
    if array.dtype == np.int32:
        return {"dtype": "i32", "shape": list(array.shape), "values": array.reshape(-1).tolist()}
    return {"shape": list(array.shape), "values": [float(f"{value:.9g}") for value in array.reshape(-1)]}


def changed(arguments, index, place, change):
    copy = arguments[index].copy()
    copy.reshape(-1)[place] += change
    return arguments[:index] + [copy] + arguments[index + 1:]


def with_magnitudes(rng, function, arguments):
    """The results of a function of a list of arrays, as text."""
    results = function(arguments)
    step = 2.0**-12
    sizes = [0.0] * len(results)
    for _ in range(4):
        moved = function([a * (1 + step * rng.choice([-1, 1], a.shape)) for a in arguments])
        for i, (after, before) in enumerate(zip(moved, results)):
            sizes[i] = max(sizes[i], float(np.abs(after - before).max()) / step)
    return [as_text(r) | {"magnitude": float(f"{size + np.abs(r).max():.4g}")} for r, size in zip(results, sizes)]


def solve(rng, made, mode):
    layer = made["layer"]
    samples = 3 if mode == "training" and made["buffers"] else int(rng.integers(1, 3))
    # All numbers of all inputs differ, so that none is larger than another by nothing.
    shapes = [(samples,) + tuple(shape) for shape in made["shapes"]]
    joined = draw(rng, (sum(int(np.prod(shape)) for shape in shapes),))
    inputs, begin = [], 0
    for shape in shapes:
        count = int(np.prod(shape))
        inputs.append(joined[begin:begin + count].reshape(shape))
        begin += count
    if made["integers"]:
        inputs = [rng.integers(0, made["integers"], shape, np.int32) for shape in shapes]
    inputs = made["prepare"](rng, inputs)
    layer.build([tuple(shape) for shape in shapes] if len(shapes) > 1 else shapes[0])
    for variable in layer.variables:
        variable.assign(np.asarray(variable.value, np.float64) if "float" in variable.dtype else variable.value)
    # Parameters stay below 1, so that sums of products do not saturate the functions after them.
    # A scalar is an array of one number in Holdfast.
    parameters = [draw(rng, tuple(v.shape) or (1,)) / 4 for v in layer.trainable_variables]
    names = getattr(layer, "names", None) or [v.name for v in layer.trainable_variables]
    moving = [v for v in layer.non_trainable_variables if v.name in made["buffers"]]
    buffers = [np.abs(draw(rng, v.shape)) for v in moving]

    # Integers have no gradient.
    trained = [] if made["integers"] else inputs

    def outputs(arguments):
        for variable, value in zip(layer.trainable_variables, arguments[len(trained):]):
            variable.assign(value.reshape(variable.shape))
        for variable, value in zip(moving, buffers):
            variable.assign(value)
        values = list(arguments[:len(trained)]) or inputs
        options = {"training": mode == "training"} if layer._call_has_training_arg else {}
        results = layer(values if len(values) > 1 else values[0], **options)
        results = results if isinstance(results, list) else [results]
        assert all(result.dtype == np.float64 for result in results), results
        return results

    arguments = trained + parameters
    output, *further = with_magnitudes(rng, outputs, arguments)
    text = {
        "mode": mode, "config": made["config"],
        "inputs": [as_text(value) for value in inputs],
        "parameters": {name: as_text(value) for name, value in zip(names, parameters)},
        "buffers": {variable.name: as_text(value) for variable, value in zip(moving, buffers)},
        "output": output,
    } | ({"further_outputs": further} if further else {})
    if mode == "training":
        output_gradients = [draw(rng, one["shape"]) / 4 for one in [output, *further]]
        step = 2.0**-14

        # Slopes of the sum of output * output_gradient over all outputs, for each element of an argument.
        def slopes(given, i, gs):
            found = np.zeros(given[i].size)
            for place in range(given[i].size):
                above, below = (outputs(changed(given, i, place, sign * step)) for sign in (1, -1))
                found[place] = sum(((a - b) * g).sum() for a, b, g in zip(above, below, gs)) / (2 * step)
            return found.reshape(given[i].shape)

        # The same for an input of a layer that does not mix samples: copies of all samples, each with another element
        # moved, are one batch. Added up over the samples.
        def slopes_of_input(given, i, gs):
            count = given[i][0].size
            moves = np.concatenate([np.eye(count), -np.eye(count)]) * step
            batch = [np.concatenate([value] * len(moves)) for value in given[:len(trained)]]
            batch[i] = batch[i] + np.repeat(moves, samples, axis=0).reshape(batch[i].shape)
            found = np.zeros(count)
            for result, g in zip(outputs(batch + given[len(trained):]), gs):
                above, below = result.reshape((2, count) + g.shape)
                found = found + ((above - below) * g).reshape(count, -1).sum(axis=1)
            return found.reshape(given[i].shape[1:]) / (2 * step)

        # Those of inputs are added up over the samples: the test moves an element of all samples at once.
        def gradients(everything):
            given, gs = everything[:len(arguments)], everything[len(arguments):]
            mixes_samples = len(made["buffers"]) > 0
            of_inputs = [slopes(given, i, gs).sum(axis=0) if mixes_samples else slopes_of_input(given, i, gs)
                         for i in range(len(trained))]
            return of_inputs + [slopes(given, i, gs) for i in range(len(trained), len(given))]

        found = with_magnitudes(rng, gradients, arguments + output_gradients)
        text["output_gradient"] = as_text(output_gradients[0])
        if further:
            text["further_output_gradients"] = [as_text(one) for one in output_gradients[1:]]
        text["input_gradients"] = found[:len(trained)]
        text["parameter_gradients"] = dict(zip(names, found[len(trained):]))
    return text
