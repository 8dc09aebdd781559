# SPDX-License-Identifier: MIT
"""A wheel that carries libraries is for one platform, any Python 3; without them it is pure."""
import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

platform = os.environ.get("ISOBIT_WHEEL_PLATFORM")


class Binary(Distribution):
    def has_ext_modules(self):
        return bool(platform)


class Wheel(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", platform) if platform else super().get_tag()


setup(distclass=Binary, cmdclass={"bdist_wheel": Wheel})
