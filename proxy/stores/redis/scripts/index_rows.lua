-- Rows by number, and the sessions they name.  Lua, because a client would need a command for each
-- row, and the names only then.
--
-- ARGV: the numbers, four bytes each.
-- Returns { rows, numbers and names of sessions in turns }.

local there = is_there()
local rows, names, seen = {}, {}, {}
for at = 1, #ARGV[1], 4 do
  local begin = struct.unpack('<I4', ARGV[1], at) * ROW_SIZE
  local row = there and redis.call('GETRANGE', ROWS, begin, begin + ROW_SIZE - 1) or ''
  if #row < ROW_SIZE then row = string.rep('\0', ROW_SIZE) end
  rows[#rows + 1] = row
  local session = struct.unpack('<I4', row)
  if there and not seen[session] then
    seen[session] = true
    local name = redis.call('HGET', MARKS, string.format('n%d', session))
    if name then
      names[#names + 1] = session
      names[#names + 1] = name
    end
  end
end
return { table.concat(rows), names }
