// Package page makes the report of a run: a page in GitHub's Markdown with plots beside
// it, and a short table for a terminal.
//
// All of it follows from the record.Run alone. No clock, host or network is asked, so the
// same run gives the same bytes.
//
// A figure is the median of its rounds. A ratio is the median of the ratios of each round,
// since both sides of a round saw the same host. A figure that is zero where zero cannot
// have been measured (no request answered, no latency known) counts as not measured.
package page
