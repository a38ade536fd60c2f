-- Remove a session with all that it owns.  Lua, because a move may only remove what it has copied.
-- UNLINK: to free a long log takes tenths of a second, which the server does beside its work.
--
-- ARGV: the stamp it must have, '' for any.
-- Returns { 1 removed / 0 changed meanwhile / -1 unknown, owner }.

local meta = redis.call('HMGET', META, 'revision', 'created', 'last', 'owner')
if not meta[1] then
  redis.call('UNLINK', unpack(KEYS))
  return { -1, '' }
end
if ARGV[1] ~= '' and stamp_of(meta) ~= ARGV[1] then
  return { 0, '' }
end
redis.call('UNLINK', unpack(KEYS))
return { 1, meta[4] or '' }
