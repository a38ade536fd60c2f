-- Remove some items.  Lua, because nobody may put one in between looking and removing.
--
-- ARGV: the lexical range (from, to), most items, now.
-- Returns how many places were removed, and how many of their items were not over; false where
-- places are to be listed again before.

if unlisted() then return false end
local now = tonumber(ARGV[4])
local places = redis.call('ZRANGEBYLEX', PLACES, ARGV[1], ARGV[2], 'LIMIT', 0, tonumber(ARGV[3]))
local there = 0
for _, place in ipairs(places) do
  if alive(place, now) then there = there + 1 end
  remove(place)
end
tidy(now)
return { #places, there }
