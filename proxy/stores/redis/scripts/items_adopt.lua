-- Take over items of another owner.  Lua, because existing ones stay.
--
-- ARGV: now, then of each: place, record ('' where it is gone there), and the record that was taken
-- over before ('' for none): that one may be replaced.
-- Returns 1 for each that was taken over, 0 for the others.

local now = tonumber(ARGV[1])
local taken = {}
for i = 2, #ARGV, 3 do
  local place, record, before = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local here = alive(place, now)
  local free = not here or here == record or here == before
  taken[#taken + 1] = free and record ~= '' and 1 or 0
  if free and record ~= '' then
    local _, _, ending = parts(record)
    put(place, record, ending)
  elseif free then
    remove(place)
  end
end
tidy(now)
return taken
