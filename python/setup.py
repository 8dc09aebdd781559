# SPDX-License-Identifier: MIT
"""A wheel that carries libraries is for one platform, any Python 3; without them it is pure."""
import os

from setuptools import setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

platform = os.environ.get("ISOBIT_WHEEL_PLATFORM")


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        if platform:
            self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", platform) if platform else super().get_tag()


setup(cmdclass={"bdist_wheel": Wheel})
