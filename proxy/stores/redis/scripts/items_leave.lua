-- Remove items that another owner has taken over.  Lua, because they may have changed meanwhile.
--
-- ARGV: place and the record taken over, of each.
-- Returns place and record, '' where it is gone, of those that are not removed for that reason.

local changed = {}
for i = 1, #ARGV, 2 do
  local record = redis.call('HGET', ITEMS, ARGV[i]) or ''
  if record == ARGV[i + 1] then
    remove(ARGV[i])
  else
    changed[#changed + 1] = ARGV[i]
    changed[#changed + 1] = record
  end
end
return changed
