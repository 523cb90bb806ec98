// Package config reads the command line, the environment and the YAML file into one
// plain Config. Only main imports it.
//
// # Order
//
// A flag beats the environment variable PINION_<FLAG>, which beats the file named by
// -config, which beats the default. A value is checked wherever it stands, also if
// another one beats it: a mistake shows when it is made, and not on the day the flag
// that hid it goes away.
//
// # Errors
//
// Every mistake of the user is a *UsageError of one line. It begins with where the
// value came from:
//
//	-cpus: …
//	PINION_CPUS: …
//	pinion.yaml:3: cpus: …
//	pinion.yaml:3: unknown key "foo"
//
// # File
//
// The file is one YAML mapping from flag names to single values. It is read strictly:
// unknown and repeated keys, lists, mappings, null, booleans and text where a number
// belongs are errors.
package config
