#!/usr/bin/env python3
"""The Trainer of transformers at full speed: a small GPT-2 with LoRA adapters, batches from two workers."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

from record import DEVICE, STEPS, Record


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        x = torch.randint(0, 1024, (128,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": x, "labels": x}


class Recorded(Trainer):
    record, more = None, True

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.more = self.record.step(loss.item())
        return loss


class Finish(TrainerCallback):
    trainer = None

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop |= not self.trainer.more
        return control


def hints():
    if "HINTS" not in os.environ:
        return []
    import phos_ft.hf

    return [phos_ft.hf.Steps()]


def main():
    set_seed(1)
    torch.use_deterministic_algorithms(True)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=1024, n_positions=128, n_embd=256, n_layer=4, n_head=4))
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True, task_type="CAUSAL_LM"))
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=STEPS, per_device_train_batch_size=8, learning_rate=1e-3, report_to="none",
        save_strategy="no", logging_strategy="no", eval_strategy="no", disable_tqdm=True, dataloader_num_workers=2, seed=1,
        lr_scheduler_type="constant", use_cpu=DEVICE == "cpu")
    finish = Finish()
    trainer = Recorded(model=model, args=arguments, train_dataset=Tokens(), callbacks=[finish, *hints()])
    trainer.record, finish.trainer = Record(), trainer
    trainer.train()


if __name__ == "__main__":
    main()
