"""The guide on replaying: its tests are run, and what it says of its recordings is so."""

from docs_src.guides.replay_tests import test_it_goes_as_it_went as test_it_goes_as_it_went
from docs_src.guides.replay_tests import test_the_menu_is_asked_for as test_the_menu_is_asked_for
