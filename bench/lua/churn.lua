-- Each connection asks for its end with every tenth request.
local n = 0
request = function()
	n = n + 1
	if n % 10 == 0 then
		return wrk.format(nil, nil, { ["Connection"] = "close" })
	end
	return wrk.format(nil)
end
