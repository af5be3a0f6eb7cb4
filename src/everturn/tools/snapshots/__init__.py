"""File snapshots: record what a turn changed in a folder, and restore it.

A snapshot is a tree of git objects in a repository of our own, outside of the folder; the folder's own repository is
never used. Trees are recorded before and after a turn, compared to show its changes, and restored to revert them.

- `store`: `FolderSnapshots`; records, compares and restores trees
- `walk`: finds the files of a folder that are recorded
- `gitignore`: evaluates `.gitignore` rules with git
- `restore`: plans a restore, and carries it out
- `large_files`: placeholders for recorded files that grew too large
- `git_objects`: reads and writes objects of the repository
- `git_process`: runs git without any configuration of the user
- `folder`: binds a store to one folder
- `folder_users`: lock between the turns that work in a folder and a restore
"""
