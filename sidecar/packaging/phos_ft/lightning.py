"""A callback that tells phos-ft the steps of Lightning::

    trainer = Trainer(..., callbacks=[phos_ft.lightning.Steps()])
"""

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the package under its former name
    from pytorch_lightning.callbacks import Callback

from . import step


class Steps(Callback):
    """Tells the end of each batch, by ``trainer.global_step``."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step(trainer.global_step)
