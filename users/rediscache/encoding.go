package rediscache

import (
	"encoding/binary"
	"hash/crc32"
)

// version is the first byte of every value. It changes with whatever makes an old value
// wrong: the encoding here, or the JSON of a user.
const version = 2

// A value is the version, a checksum and the JSON; no JSON says that there is no such
// user. The checksum is CRC-32C over the id, the version, the incarnation of Redis and the
// JSON.
const headerSize = 1 + crc32.Size

func checksum(id int64, incarnation uint32, json []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once, by the package
	var head [13]byte
	binary.BigEndian.PutUint64(head[:], uint64(id))
	binary.BigEndian.PutUint32(head[8:], incarnation)
	head[12] = version
	return crc32.Update(crc32.Checksum(head[:], table), table, json)
}

// appendValue appends the value of json.
func appendValue(dst []byte, id int64, incarnation uint32, json []byte) []byte {
	dst = append(dst, version)
	dst = binary.BigEndian.AppendUint32(dst, checksum(id, incarnation, json))
	return append(dst, json...)
}

// decode returns a view of the JSON in value. ok is false for what appendValue did
// not make for id under the same incarnation.
func decode(id int64, incarnation uint32, value []byte) (json []byte, ok bool) {
	if len(value) < headerSize || value[0] != version {
		return nil, false
	}
	json = value[headerSize:]
	if binary.BigEndian.Uint32(value[1:]) != checksum(id, incarnation, json) {
		return nil, false
	}
	return json, true
}
