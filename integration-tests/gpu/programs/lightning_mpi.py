#!/usr/bin/env python3
"""PyTorch Lightning at full speed in a process that has initialised MPI, as Lightning itself does where mpi4py is there."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import warnings

if os.environ.get("SOAK_DEVICE") != "cpu":
    from mpi4py import MPI

    print("MPI", MPI.Get_library_version().splitlines()[0], flush=True)
import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset

from record import DEVICE, STEPS, Record


class Points(Dataset):
    def __len__(self):
        return 1 << 24

    def __getitem__(self, i):
        return torch.randn(64, generator=torch.Generator().manual_seed(i))


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 512), torch.nn.GELU(),
            torch.nn.Linear(512, 64))
        self.record = Record()

    def training_step(self, batch, _):
        return ((self.net(batch) - batch.cumsum(1).sin()) ** 2).mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if not self.record.step(outputs["loss"].item()):
            self.trainer.should_stop = True

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def hints():
    if "HINTS" not in os.environ:
        return []
    import phos_ft.lightning

    return [phos_ft.lightning.Steps()]


def main():
    warnings.filterwarnings("ignore")
    L.seed_everything(1)
    trainer = L.Trainer(
        accelerator="cpu" if DEVICE == "cpu" else "gpu", devices=1, max_steps=STEPS, deterministic=True, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=hints())
    trainer.fit(Module(), DataLoader(Points(), batch_size=32, num_workers=0, pin_memory=DEVICE != "cpu"))


if __name__ == "__main__":
    main()
