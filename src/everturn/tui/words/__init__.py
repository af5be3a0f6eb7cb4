"""What the screens say, in English and in Chinese: a Struct for each part of the screen, filled in twice.

A word that is missing in one language is then an error of types, not a hole on the screen.
"""
