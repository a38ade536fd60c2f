-- Is there a session?  Lua, though one command would do: a server may answer commands and refuse
-- scripts, or hold them up as long as writes, and all that reads sessions is a script.
--
-- KEYS: the session's meta.

return redis.call('EXISTS', KEYS[1])
