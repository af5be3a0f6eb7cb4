"""The first run of `everturn` on six kinds of machine: seconds to the first answer, or to the next step.

campaign   the six states, each in a home folder of its own
"""
