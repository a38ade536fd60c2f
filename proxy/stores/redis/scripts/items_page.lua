-- Items in the order of their places.  Lua, because which ones have expired is known only here, and
-- another round trip would cost more than everything else.
--
-- ARGV: the lexical range (from, to), the limit of items, the limit of places to examine, now.
-- Returns { the last place examined, or '' at the end; then place and record of each }, or false if
-- the list of places must be rebuilt first.

if unlisted() then return false end
local limit, places, now = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local rows = { '' }
local MAX_BYTES = 1000000 -- of records at once, so that the server is never busy for long
local size = 0
local examined = redis.call('ZRANGEBYLEX', PLACES, ARGV[1], ARGV[2], 'LIMIT', 0, places)
for i, place in ipairs(examined) do
  local record = alive(place, now)
  if record then
    rows[#rows + 1] = place
    rows[#rows + 1] = record
    size = size + #record
  end
  if i == places or #rows > 2 * limit or size >= MAX_BYTES then
    rows[1] = place
    break
  end
end
return rows
