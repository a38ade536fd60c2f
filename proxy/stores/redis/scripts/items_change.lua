-- Change items: all, or none of them.  Lua, because each may depend on the version it finds.  The
-- key behind the items' is the erasure mark of their owner.
--
-- ARGV: now, when that was read which the changes are made from ('' for not known), then of each: place, the version that it must find ('' for any), whether it
-- puts (1) or deletes (0), the end, the value.
-- Returns 1, or 0 where a version is another, or the person was erased since, and nothing was changed.

local now = tonumber(ARGV[1])
local found = {}
if forbids(redis.call('GET', KEYS[4]), ARGV[2]) then return 0 end
for i = 3, #ARGV, 5 do
  local record = alive(ARGV[i], now)
  local version, created = 0, ARGV[1]
  if record then version, created = parts(record) end
  if ARGV[i + 1] ~= '' and tonumber(ARGV[i + 1]) ~= version then return 0 end
  found[i] = { version + 1, created }
end

-- Removals first: see mark.lua.
for i = 3, #ARGV, 5 do
  if ARGV[i + 2] == '0' then remove(ARGV[i]) end
end
for i = 3, #ARGV, 5 do
  if ARGV[i + 2] == '1' then
    local version, created = unpack(found[i])
    local head = { string.format('%d', version), created, ARGV[1], ARGV[i + 3], ARGV[i + 4] }
    put(ARGV[i], table.concat(head, ' '), ARGV[i + 3])
  end
end
tidy(now)
return 1
