-- Make what was brought a session.  Lua, because it must be all of it or nothing, and never in the
-- place of another.
--
-- KEYS: of the session, then those it was brought under.  ARGV: the ttl, the name of this change
-- by hand.
-- Returns { 1 done / 0 there is one already / -1 what was brought is gone, owner, last active, ttl }.
--
-- Sent once more because the reply was lost, it is known by its name while no change by hand has followed.

local function answer(status)
  local meta = redis.call('HMGET', META, 'owner', 'active_at', 'ttl')
  return { status, meta[1] or '', meta[2] or '', meta[3] or '' }
end

local brought = { unpack(KEYS, SESSION_KEYS + 1) }
if redis.call('EXISTS', META) == 1 then
  -- Changes nothing, but is a write: WAIT on this connection then covers the first attempt too.
  redis.call('HINCRBY', META, 'revision', 0)
  redis.call('UNLINK', unpack(brought))
  return answer(redis.call('HGET', META, 'revised') == ARGV[2] and 1 or 0)
end
if redis.call('EXISTS', brought[1]) == 0 then return { -1, '', '', '' } end
for i = 1, SESSION_KEYS do
  redis.call('UNLINK', KEYS[i])
  if redis.call('EXISTS', brought[i]) == 1 then redis.call('RENAME', brought[i], KEYS[i]) end
end
expire(tonumber(ARGV[1]))
return answer(1)
