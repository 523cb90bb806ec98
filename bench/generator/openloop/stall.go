package openloop

import (
	"math"
	"time"

	"pinion/bench/record"
)

// Stall is a server that answers at once, except that it stops for Stop in every Every;
// and what an open loop of constant Rate must see of it in Duration, which should be a
// whole number of Every: then it does not matter when the stops begin.
//
// Whoever is due x before the end of a stop is answered x late. So a part Stop/Every of
// all requests is late, by anything from 0 to Stop alike. A real server also has to work
// off what has queued up: at a load of r of what it can do, it takes 1/(1-r) times as long
// until nobody waits.
type Stall struct {
	Rate                  float64
	Stop, Every, Duration time.Duration
}

// Quantile returns the latency that a part of all requests, from 0 to 1, does not exceed.
func (s Stall) Quantile(part float64) time.Duration {
	late := float64(s.Stop) - (1-part)*float64(s.Every)
	return time.Duration(math.Round(max(0, late)))
}

// Slower returns how many requests take d or longer. d must be above 0.
func (s Stall) Slower(d time.Duration) float64 {
	part := max(0, (s.Stop-d).Seconds()) / s.Every.Seconds()
	return part * s.Rate * s.Duration.Seconds()
}

// Latency returns the distribution as a Result has it.
func (s Stall) Latency() record.Latency {
	return describe(int64(s.Rate*s.Duration.Seconds()), s.Stop, s.Quantile)
}
