-- 16 requests in one write.
init = function(args)
	local one = wrk.format(nil)
	local all = {}
	for i = 1, 16 do
		all[i] = one
	end
	request = function()
		return table.concat(all)
	end
	req = table.concat(all)
end

request = function()
	return req
end
