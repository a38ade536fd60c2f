-- Put items where there are none.  Lua, because one that is here already stays.
--
-- ARGV: now, then of each: place, record, end.
-- Returns how many were put.

local now = tonumber(ARGV[1])
local filled = 0
for i = 2, #ARGV, 3 do
  if not alive(ARGV[i], now) and not is_over(ARGV[i + 2], now) then
    put(ARGV[i], ARGV[i + 1], ARGV[i + 2])
    filled = filled + 1
  end
end
tidy(now)
return filled
