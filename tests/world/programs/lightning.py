"""lightning: Trainer with callbacks and checkpoints, data modules, Fabric; torchmetrics."""

import logging
import tempfile
from pathlib import Path

import lightning as L
import torch
import torchmetrics
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
)
from support import Programs, fill, integers, norm, random

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
programs = Programs()


class Network(L.LightningModule):
    def __init__(self, rate=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.layers = fill(
            torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        )
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
        self.losses = []

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss, prog_bar=True)
        self.losses.append(float(loss.detach()))
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        out = self(x)
        self.log("val_loss", torch.nn.functional.cross_entropy(out, y))
        self.accuracy(out, y)
        self.log("accuracy", self.accuracy, on_epoch=True)

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7),
        }


class Data(L.LightningDataModule):
    def setup(self, stage):
        self.set = torch.utils.data.TensorDataset(random(24, 8), integers(24, high=3))

    def train_dataloader(self):
        return torch.utils.data.DataLoader(self.set, batch_size=8)

    val_dataloader = test_dataloader = predict_dataloader = train_dataloader


def trainer(folder, **options):
    quiet = {
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "logger": False,
        "accelerator": "cpu",
    }
    return L.Trainer(default_root_dir=folder, **quiet | {"max_epochs": 3} | options)


class Watch(Callback):
    def __init__(self):
        self.seen = []

    def on_train_epoch_end(self, trainer, module):
        self.seen.append(trainer.current_epoch)

    def on_fit_end(self, trainer, module):
        self.seen.append("end")


@programs
def fit():
    with tempfile.TemporaryDirectory() as folder:
        watch, net = Watch(), Network()
        checkpoint = ModelCheckpoint(
            dirpath=folder, monitor="val_loss", filename="{epoch}", save_top_k=2, save_last=True
        )
        run = trainer(
            folder,
            callbacks=[watch, checkpoint, EarlyStopping("val_loss", patience=2)],
            gradient_clip_val=0.5,
        )
        run.fit(net, Data())
        said = {"losses": net.losses, "parameters": norm(net.parameters()), "seen": watch.seen,
                "files": sorted(path.name for path in Path(folder).iterdir())}  # fmt: skip
        said["metrics"] = {key: float(value) for key, value in run.callback_metrics.items()}
        said["test"] = [dict(one) for one in run.test(net, Data(), verbose=False)]
        said["predicted"] = run.predict(net, Data())
        again = Network.load_from_checkpoint(checkpoint.best_model_path)
        said["again"] = again.eval()(random(2, 8))
        said["rate"] = again.hparams.rate
        resumed = Network()
        trainer(folder, max_epochs=5, enable_checkpointing=False).fit(
            resumed, Data(), ckpt_path=str(Path(folder, "last.ckpt"))
        )
        said["resumed"] = resumed.losses
    return said


@programs
def options():
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, given in {
            "accumulate": {"accumulate_grad_batches": 2}, "limit": {"limit_train_batches": 2}, "fast": {"fast_dev_run": True},
            "bf16": {"precision": "bf16-mixed"}, "double": {"precision": "64-true"}, "anomaly": {"detect_anomaly": True},
        }.items():  # fmt: skip
            net = Network()
            trainer(folder, enable_checkpointing=False, **given).fit(net, Data())
            said[name] = [
                len(net.losses),
                net.losses[0] if name != "bf16" else round(net.losses[0], 1),
            ]
    return said


@programs
def manual_optimization():
    class Manual(Network):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
            self.losses.append(float(loss.detach()))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    with tempfile.TemporaryDirectory() as folder:
        net = Manual()
        trainer(folder, enable_checkpointing=False).fit(net, Data())
    return {"losses": net.losses}


@programs
def loggers():
    with tempfile.TemporaryDirectory() as folder:
        from lightning.pytorch.loggers import CSVLogger

        logger = CSVLogger(folder)
        run = trainer(
            folder,
            logger=logger,
            callbacks=[LearningRateMonitor()],
            log_every_n_steps=1,
            enable_checkpointing=False,
        )
        run.fit(Network(), Data())
        lines = Path(logger.log_dir, "metrics.csv").read_text().splitlines()
        return {"lines": len(lines), "names": sorted(lines[0].split(","))}


@programs
def fabric():
    run = L.Fabric(accelerator="cpu", devices=1)
    run.launch()
    net = fill(torch.nn.Linear(8, 3))
    net, optimizer = run.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    data = Data()
    data.setup("fit")
    losses = []
    for x, y in run.setup_dataloaders(data.train_dataloader()):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        run.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
    with tempfile.TemporaryDirectory() as folder:
        run.save(str(Path(folder, "state.ckpt")), {"net": net, "step": 3})
        state = run.load(str(Path(folder, "state.ckpt")))
    return {"losses": losses, "step": state["step"], "weight": state["net"]["weight"]}


@programs
def metrics():
    scores, labels = random(40, 3).softmax(-1), integers(40, high=3)
    said = {}
    for name in ("Accuracy", "F1Score", "Precision", "Recall", "AUROC", "ConfusionMatrix", "CohenKappa", "MatthewsCorrCoef", "AveragePrecision",
                 "CalibrationError", "HammingDistance", "JaccardIndex", "Specificity"):  # fmt: skip
        metric = getattr(torchmetrics, name)(task="multiclass", num_classes=3)
        metric.update(scores[:20], labels[:20])
        metric.update(scores[20:], labels[20:])
        said[name] = metric.compute()
    one, other = random(40), random(40, seed=1)
    for name in (
        "MeanSquaredError",
        "MeanAbsoluteError",
        "R2Score",
        "PearsonCorrCoef",
        "SpearmanCorrCoef",
        "ExplainedVariance",
        "CosineSimilarity",
    ):
        shaped = (one[None], other[None]) if name == "CosineSimilarity" else (one, other)
        said[name] = getattr(torchmetrics, name)()(*shaped)
    images = random(2, 3, 32, 32).sigmoid(), random(2, 3, 32, 32, seed=1).sigmoid()
    said["ssim"] = torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0)(*images)
    said["psnr"] = torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0)(*images)
    said["mean"] = torchmetrics.MeanMetric()(one)
    collection = torchmetrics.MetricCollection(
        [torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError()]
    )
    return said | {"collection": collection(one, other)}
