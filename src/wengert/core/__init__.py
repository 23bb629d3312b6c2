"""The ground floor: what every other part of the package stands on."""

import os

#: Where this package lies, with the separator that file names inside it go on with.
PACKAGE_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
