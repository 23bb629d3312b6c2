"""U-Net that segments discs in noise, by a loss of cross entropy and overlap."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super().__init__()
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = Down(4, 8)
        self.down2 = Down(8, 8)
        self.up1 = Up(16, 4, bilinear=True)
        self.up2 = nn.ConvTranspose2d(4, 4, kernel_size=2, stride=2, output_padding=(1, 1))
        self.last = DoubleConv(8, 4)
        self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.last(torch.cat([x1, self.up2(x)], dim=1))
        return self.outc(x)


def dice_loss(prediction, target, eps=1e-6):
    sum_dim = (-1, -2)
    inter = 2 * (prediction * target).sum(dim=sum_dim)
    sets_sum = prediction.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return 1 - ((inter + eps) / (sets_sum + eps)).mean()


def discs(n, size=21):
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centres = torch.rand(n, 2, 1, 1) * size
    radii = 3 + 3 * torch.rand(n, 1, 1)
    masks = ((x - centres[:, 0]) ** 2 + (y - centres[:, 1]) ** 2).sqrt() < radii
    images = masks.float().unsqueeze(1) + 0.5 * torch.randn(n, 1, size, size)
    return images, masks.long()


torch.manual_seed(3)
images, masks = discs(8)
model = UNet(n_channels=1, n_classes=2)
model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(
    model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True
)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=2)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    model.train()
    batch = images.to(device="cpu", dtype=torch.float32, memory_format=torch.channels_last)
    pred = model(batch)
    loss = criterion(pred, masks)
    loss += dice_loss(
        F.softmax(pred, dim=1).float()[:, 1:],
        F.one_hot(masks, 2).permute(0, 3, 1, 2).float()[:, 1:],
    )
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    model.eval()
    with torch.inference_mode():
        overlap = 1 - dice_loss((model(images).argmax(dim=1) == 1).float(), masks.float())
    scheduler.step(overlap)
    print(f"epoch {epoch} loss {loss.item():.7f} dice {overlap.item():.3f}")
