-- Try what the other scripts do: a user may be allowed to write, and forbidden scripts or some of their
-- commands.  Lua, because it is only asked here what these may do.  On a text most of it changes nothing.
--
-- KEYS: a key that nobody needs.  Returns the commands that are refused.

local TRIALS = { -- arguments, and the commands that are tried with them
  { 'GET STRLEN EXISTS PTTL PERSIST HLEN HKEYS HGETALL SCARD SMEMBERS ZCARD' },
  { 'HGET HMGET HEXISTS HDEL SADD SREM ZSCORE ZREM SSCAN HSCAN APPEND PEXPIRE EXPIRE', '9' },
  { 'HSET HSETNX HINCRBY ZADD ZCOUNT ZRANGE ZREVRANGE ZRANGEBYSCORE GETRANGE SETRANGE', '0', '0' },
  { 'ZRANGEBYLEX', '-', '+' },
  { 'EXPIREAT', '9' },
  { 'UNLINK DEL' },
}

local refused = {}
redis.call('SET', KEYS[1], '')
for _, trial in ipairs(TRIALS) do
  for name in string.gmatch(trial[1], '%S+') do
    local reply = redis.pcall(name, KEYS[1], unpack(trial, 2))
    local problem = type(reply) == 'table' and reply.err
    if problem and not string.find(problem, 'WRONGTYPE', 1, true) then refused[#refused + 1] = name end
  end
end
return refused
