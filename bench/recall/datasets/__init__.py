"""The sets of conversations that can be read, each as its authors publish it; no data is here.

``table``        which sets there are, and which of them a file is of
``document``     a file as it is read, and the files beside it
``labelled``     what a set gives: people, and what was done to their labels
``dialogue``     what LoCoMo's form and those made after it have in common
``part``         the part of a long turn that an answer is about

and a module for each set, which knows it by its structure.  What is replayed, what counts as
evidence and which questions are left out is told in ../../README.md.
"""
