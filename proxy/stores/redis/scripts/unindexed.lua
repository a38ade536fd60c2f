-- What the index of a session without user may lack of it.  Lua, because what must be read is known
-- only here: without it this would take three round trips.
--
-- KEYS: the session's, then meta and marks of its own index, in the same slot.
-- ARGV: the session, the limit of messages, whether active and superseded ones (0/1 each), the limit of
-- places to examine.
-- Returns { the session's meta as by HGETALL }; if the session exists and has no user, then also what
-- index_lookup.lua and messages.lua return, from the message on that the mark names.

local meta = redis.call('HGETALL', META)
if #meta == 0 or redis.call('HEXISTS', META, 'owner') == 1 then return { meta } end
local index = redis.call('HMGET', KEYS[SESSION_KEYS + 1], 'revision', 'state')
local mark = index[1] and redis.call('HGET', KEYS[SESSION_KEYS + 2], 's' .. ARGV[1]) or ''
local lookup = index[2] and { index[1] or '0', index[2], mark } or {}
local marked = tonumber(string.match(mark, '^%d+ (%d+)') or 1)
local wanted = { ['1'] = ARGV[3] == '1', ['0'] = ARGV[4] == '1' }
return { meta, lookup, page(marked - 1, tonumber(ARGV[2]), wanted, tonumber(ARGV[5]), false) }
