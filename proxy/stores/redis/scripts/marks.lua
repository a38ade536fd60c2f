-- The marks of what was erased, each a key of its own: what began at that time or before is refused.
-- Put in front of the scripts that look at them.

-- Does a mark ('' or false for none) forbid what began then ('' where that is not asked)?
local function forbids(mark, began)
  return mark and mark ~= '' and began ~= '' and tonumber(began) <= tonumber(mark)
end
