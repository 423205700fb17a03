"""The results as lines of text, each with its goal. Times are medians over rounds. Ratios are medians of the rounds'
ratios, since disturbances of a machine come and go. A measurement that was cut off is reported as far as it got."""

import statistics

AIMS = {("mlp", "device"): 1.15, ("mlp", "host"): 1.2, ("lenet5", "device"): 1.2}
LINK_AIM, ADAM_AIM, FETCH_AIM, STALL_AIM = 0.9, 0.9, 0.9, 1.2
MLP_WIDTHS = (8000, 4000, 2000, 500, 300)
# The bytes of a step without caches: seven numbers for each parameter in the update, each weight read once, and each
# gradient written once.
LEAST_BYTES_A_PARAMETER = 36
ADAM_BYTES_A_PARAMETER = 28
# Warm steps of a turn in which steps with snapshots are recognised by their numbers.
SNAPSHOT_WARM = 5


def mlp_widths(divisor):
    return [width // divisor for width in MLP_WIDTHS] + [1]


def mlp_parameters(divisor=1):
    widths = mlp_widths(divisor)
    return sum((inputs + 1) * outputs for inputs, outputs in zip(widths, widths[1:]))


def lenet5_parameters():
    return 26 * 6 + 151 * 16 + 401 * 120 + 121 * 84 + 85 * 10


def step_flops(measured):
    """The FLOPs of a step's products: forward, and gradients of weights and of inputs, but not of the samples."""
    if measured["model"] == "mlp":
        widths = mlp_widths(measured["divisor"])
        products = [inputs * outputs for inputs, outputs in zip(widths, widths[1:])]
    else:
        products = [28 * 28 * 6 * 25, 10 * 10 * 16 * 150, 400 * 120, 120 * 84, 84 * 10]
    return 2 * measured["batch"] * (3 * sum(products) - products[0])


def step_least_bytes(measured):
    is_mlp = measured["model"] == "mlp"
    parameters = mlp_parameters(measured["divisor"]) if is_mlp else lenet5_parameters()
    return LEAST_BYTES_A_PARAMETER * parameters + sample_bytes(measured)


def sample_bytes(measured):
    features = mlp_widths(measured["divisor"])[0] if measured["model"] == "mlp" else 28 * 28
    return 4 * measured["batch"] * (features + 1)


def judged(value, aim, is_least=True):
    is_met = value >= aim if is_least else value <= aim
    return f"aimed at {'>=' if is_least else '<='} {aim:g}: {'met' if is_met else 'MISSED'}"


def ratio(above, below):
    """The median of the ratios of the rounds."""
    return statistics.median(a / b for a, b in zip(above, below))


def best_way(seconds, data, ways):
    """The fastest way of the peer; None if there is none."""
    there = [way for way in ways if f"{way}/{data}" in seconds]
    return min(there, key=lambda way: statistics.median(seconds[f"{way}/{data}"]), default=None)


def of_limits(measured):
    yield f"{measured['device']}: copies within the device {measured['copy_gb_s']:.0f} GB/s (read and written)"
    yield (
        f"pinned memory to the device {measured['host_to_device_gb_s']:.1f} GB/s, "
        f"back {measured['device_to_host_gb_s']:.1f} GB/s"
    )
    for precision, rate in measured.get("matrix_tflop_s", {}).items():
        yield f"matrix products in {precision} {rate:.0f} TFLOP/s"
    for precision, rates in measured.get("layer_tflop_s", {}).items():
        passes = ", ".join(f"{name.replace('_', ' ')} {rate:.0f}" for name, rate in rates.items())
        yield f"a dense layer's products in {precision}, as cuBLASLt proposes them first: {passes} TFLOP/s"


def of_training(measured, data, ways, limits):
    place = "data on the device" if data == "device" else "data in the host's memory"
    title = f"{measured['model']} {measured['precision']}, {place}"
    seconds = measured["step_seconds"]
    name = f"holdfast/{data}"
    if name not in seconds:
        yield f"{title}: not measured: {measured['failures'].get(name, 'no round was finished')}"
        yield from of_first_round(title, measured, data, ways)
        return
    ours = seconds[name]
    text = f"{title}: Holdfast {statistics.median(ours) * 1e3:.3f} ms a step"
    best = best_way(seconds, data, ways)
    if best is None:
        yield f"{text}; no peer was measured"
    else:
        theirs = seconds[f"{best}/{data}"]
        aim = AIMS[measured["model"], data]
        yield (
            f"{text}, PyTorch at best ({best}) {statistics.median(theirs) * 1e3:.3f}: "
            f"{ratio(theirs, ours):.2f} times as many steps; {judged(ratio(theirs, ours), aim)}"
        )
    yield from shares(title, measured, data, statistics.median(ours), limits)


def of_first_round(title, measured, data, ways):
    """The time of the short turn that does not count, for a contender without another turn."""
    seconds = measured.get("first_round_step_seconds", {})
    best = best_way(seconds, data, ways)
    there = [("Holdfast", f"holdfast/{data}"), (f"PyTorch at best ({best})", f"{best}/{data}")]
    parts = [f"{who} {seconds[name][0] * 1e3:.3f} ms a step" for who, name in there if name in seconds]
    if parts:
        yield f"{title}: in the short round before: {', '.join(parts)}"


def shares(title, measured, data, step_seconds, limits):
    """The lines about the limits of the machine, as far as they were measured."""
    parts = []
    matrix_rate = limits.get("matrix_tflop_s", {}).get("bf16")
    if matrix_rate:
        parts.append(f"{step_flops(measured) / step_seconds / matrix_rate / 1e10:.1f} % of the bf16 matrix rate")
    if limits.get("copy_gb_s"):
        share = step_least_bytes(measured) / step_seconds / limits["copy_gb_s"] / 1e7
        parts.append(f"{share:.1f} % of the copy bandwidth")
    if limits.get("host_to_device_gb_s") and data == "host":
        share = sample_bytes(measured) / step_seconds / limits["host_to_device_gb_s"] / 1e9
        parts.append(f"{100 * share:.1f} % of the link ({judged(share, LINK_AIM)})")
    if parts:
        yield f"{title}: {', '.join(parts)}"


def of_passes(measured):
    ours, raw = measured["holdfast"], measured["runtime"]
    if not ours:
        yield "passes over the state: not measured: no round was finished"
        return
    adam = [one["adam_gb_s"] for one in ours]
    copies = [one["copy_gb_s"] for one in raw] or [one["copy_gb_s"] for one in ours]
    whose = "of the runtime's copies" if raw else "of Holdfast's own copies"
    share = ratio(adam, copies)
    yield (
        f"Adam on {ours[0]['floats']} parameters: {statistics.median(adam):.0f} GB/s, {100 * share:.1f} % {whose}; "
        f"{judged(share, ADAM_AIM)}"
    )
    if measured["pytorch_adam_seconds"]:
        theirs = statistics.median(measured["pytorch_adam_seconds"]) * 1e3
        seconds = [one["floats"] * ADAM_BYTES_A_PARAMETER / one["adam_gb_s"] / 1e6 for one in ours]
        yield f"Adam: Holdfast {statistics.median(seconds):.3f} ms, PyTorch's fused one {theirs:.3f} ms"
    for key, what in (("to_host_gb_s", "device to host, pinned"), ("from_host_gb_s", "host to device, pinned")):
        rates = [one[key] for one in ours]
        line = f"{what}: {statistics.median(rates):.1f} GB/s"
        if raw:
            other = "device_to_host_gb_s" if key == "to_host_gb_s" else "host_to_device_gb_s"
            share = ratio(rates, [one[other] for one in raw])
            line += f", {100 * share:.1f} % of the runtime's; {judged(share, FETCH_AIM)}"
        yield line
    for key, what in (("to_host_unpinned_gb_s", "device to host"), ("from_host_unpinned_gb_s", "host to device")):
        yield f"{what}, memory that is not pinned: {statistics.median(one[key] for one in ours):.1f} GB/s"


def stalls(turn, every):
    """How much longer a step with a snapshot takes than the others. A snapshot is in the time of the next step."""
    after_snapshots, others = [], []
    for number, seconds in enumerate(turn["times"], turn["first_step"]):
        (after_snapshots if (number - 1) % every == 0 else others).append(seconds)
    usual = statistics.median(others)
    return [seconds - usual for seconds in after_snapshots]


def of_snapshot(measured):
    if not measured["turns"] or not measured["passes"]:
        yield "the stall of a snapshot: not measured: no round was finished"
        return
    waits = [stall for turn in measured["turns"] for stall in stalls(turn, measured["every"])]
    copy = statistics.median(one["state_copy_seconds"] for one in measured["passes"])
    stall = statistics.median(waits)
    yield (
        f"a snapshot stalls training for {stall * 1e3:.2f} ms, {stall / copy:.2f} times a copy of the state within "
        f"the device ({copy * 1e3:.3f} ms); {judged(stall / copy, STALL_AIM, is_least=False)}"
    )
