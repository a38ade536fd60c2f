-- Put items where there are none.  Lua, because existing ones stay.  The key after the items' is the
-- erasure mark of their owner.
--
-- ARGV: now, when that began which brings them ('' for not known), then of each: place, record, end.
-- Returns how many were put: none behind the mark.

local now = tonumber(ARGV[1])
local filled = 0
if forbids(redis.call('GET', KEYS[4]), ARGV[2]) then return 0 end
for i = 3, #ARGV, 3 do
  if not alive(ARGV[i], now) and not is_over(ARGV[i + 2], now) then
    put(ARGV[i], ARGV[i + 1], ARGV[i + 2])
    filled = filled + 1
  end
end
tidy(now)
return filled
