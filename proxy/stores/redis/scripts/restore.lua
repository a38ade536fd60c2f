-- Make what was brought a session.  Lua, because it must be all of it or nothing, never in the place of
-- another, and never behind an erasure.
--
-- KEYS: of the session, then those it was brought under, then the marks of what was erased: the
-- session's and its person's; then the lists that it comes into (see touch.lua).  In a cluster all but
-- the session's mark live elsewhere: lists are written afterwards, and look at the person's mark.
-- ARGV: how long it lives from now (s, 0 for ever), the name of this change by hand, when it was read
-- ('' for not known), number of keys that are marks, the session's id.
-- Returns { 1 done / 0 there is one already / -1 what was brought is gone / -2 erased since it was read,
-- owner, last active, ttl }.
--
-- Sent once more because the reply was lost, it is known by its name while no change by hand has followed.

local marks = 2 * SESSION_KEYS
local lists = marks + tonumber(ARGV[4])

local function answer(status)
  local meta = redis.call('HMGET', META, 'owner', 'active_at', 'ttl')
  return { status, meta[1] or '', meta[2] or '', meta[3] or '' }
end

local brought = { unpack(KEYS, SESSION_KEYS + 1, marks) }
if redis.call('EXISTS', META) == 1 then
  -- Changes nothing, but is a write: WAIT on this connection then covers the first attempt too.
  redis.call('HINCRBY', META, 'revision', 0)
  redis.call('UNLINK', unpack(brought))
  return answer(redis.call('HGET', META, 'revised') == ARGV[2] and 1 or 0)
end
if redis.call('EXISTS', brought[1]) == 0 then return { -1, '', '', '' } end
if any_forbids(marks + 1, lists, ARGV[3]) then
  redis.call('UNLINK', unpack(brought))
  return { -2, '', '', '' }
end
for i = 1, SESSION_KEYS do
  redis.call('UNLINK', KEYS[i])
  if redis.call('EXISTS', brought[i]) == 1 then redis.call('RENAME', brought[i], KEYS[i]) end
end
expire(tonumber(ARGV[1]))
local done = answer(1)
for i = lists + 1, #KEYS, 2 do
  touch(KEYS[i], KEYS[i + 1], ARGV[5], done[3], tonumber(done[4]))
end
return done
