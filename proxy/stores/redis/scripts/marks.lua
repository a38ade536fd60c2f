-- Erasure marks, each a key of its own: what began at its time or before is refused.  Prepended to the
-- scripts that read them.

-- Whether a mark ('' or false: none) forbids what began then ('': unknown, allowed).
local function forbids(mark, began)
  return mark and mark ~= '' and began ~= '' and tonumber(began) <= tonumber(mark)
end
