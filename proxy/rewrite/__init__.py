"""A short message that points back, written out for recall by a small model.

``question``  what the model is asked, and what of its answer is searched for.  Pure
``rewriter``  asking it, in time
"""
