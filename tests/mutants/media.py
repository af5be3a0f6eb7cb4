"""Seeded bugs in what models make and people do by hand; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

HERE = "tests/models/test_media.py::"

MEDIA_MUTANTS = [
    Mutant(
        "what is missing is found out when it is too late",
        "chat/admission.py",
        "        raise MissingInput(problem)",
        "        pass",
        f"{HERE}test_what_a_model_needs_is_missed_before_anything_is_created",
    ),
    Mutant(
        "the first picture of a branch is edited, and not the last",
        "core/modality.py",
        "for message in reversed(branch)",
        "for message in branch",
        f"{HERE}test_without_one_the_last_picture_of_the_branch_is_edited",
    ),
    Mutant(
        "a file that is not kept is in the log",
        "turn/stream.py",
        "for part in self._parts if part not in unstored",
        "for part in self._parts",
        "tests/turn/test_stream.py::test_a_file_that_is_being_kept_when_the_turn_is_cancelled_has_not_come",
    ),
    Mutant(
        "a picture is paid for twice",
        "models/media/__init__.py",
        "raise ModelError(str(broke), broke.kind) from None",
        "raise",
        "tests/docs_src/test_media.py::test_a_voice_that_broke_off_is_not_paid_for_twice_and_never_kept_in_part",
    ),
    Mutant(
        "half a picture is a picture",
        "models/media/images.py",
        " or not seen.is_whole:",
        ":",
        "tests/models/test_hostile_media.py::test_no_picture_is[half a picture-image-gen]",
    ),
    Mutant(
        "a model does not see the picture it has made",
        "models/formats/files.py",
        "made += seen",
        "pass",
        f"{HERE}test_a_chat_model_sees_the_picture_that_was_made",
    ),
    Mutant(
        "what a person has done is done again",
        "calls/admit.py",
        "if resolution is not None and resolution.result is not None:",
        "if False:",
        "tests/tools/test_manual.py::test_what_a_person_did_is_the_result_and_nothing_is_run",
    ),
    Mutant(
        "the parameters of a chat go to a model that draws",
        "chat/message_options.py",
        'fields["params"] = None',
        "pass",
        f"{HERE}test_what_a_chat_was_told_is_not_for_a_model_that_draws",
    ),
    Mutant(
        "an address is taken for a picture",
        "models/media/images.py",
        "elif picture.url and not text:",
        "elif False:",
        f"{HERE}test_the_address_of_a_picture_is_not_followed",
    ),
]
