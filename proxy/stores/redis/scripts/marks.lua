-- Erasure marks, each a key of its own: what began at its time or before is refused.  Prepended to the
-- scripts that read them.

-- Whether a mark ('' or false: none) forbids what began then ('': unknown, allowed).
local function forbids(mark, began)
  return mark and mark ~= '' and began ~= '' and tonumber(began) <= tonumber(mark)
end

-- Whether the mark in one of these keys forbids what began then.
local function any_forbids(first, last, began)
  for i = first, last do
    if forbids(redis.call('GET', KEYS[i]), began) then return true end
  end
  return false
end
