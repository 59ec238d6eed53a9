"""A callback that tells phos-ft the steps of Hugging Face's Trainer::

    trainer = Trainer(..., callbacks=[phos_ft.hf.Steps()])
"""

from transformers import TrainerCallback

from . import step


class Steps(TrainerCallback):
    """Tells the end of each optimizer step, by ``state.global_step``."""

    def on_step_end(self, args, state, control, **kwargs):
        step(state.global_step)
