// Command hertz is the peer "hertz": on its own netpoll transport and with sonic for JSON,
// both its defaults on Linux, and the recovery middleware of server.Default, which
// its documentation starts every server with. Its start-up log is off.
package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"pinion/bench/peers/work"
)

func main() { os.Exit(work.Run(serve)) }

func serve(ctx context.Context, c work.Config) error {
	hlog.SetLevel(hlog.LevelError)
	a := api{users: c.Users}
	h := server.Default(
		server.WithHostPorts(c.Addr), server.WithDisablePrintRoute(true), server.WithExitWaitTime(work.StopTimeout),
		server.WithReadTimeout(work.ReadTimeout), server.WithWriteTimeout(work.WriteTimeout), server.WithIdleTimeout(work.IdleTimeout),
	)
	h.GET("/api/ping", a.ping)
	h.GET("/sleep", a.sleep)
	h.GET("/json", a.order)
	h.POST("/json", a.purchase)
	h.GET("/api/users", a.find)
	done := make(chan error, 1)
	go func() { done <- h.Run() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.StopTimeout)
	defer cancel()
	return h.Shutdown(stop)
}

type api struct{ users *work.Store }

func (api) ping(_ context.Context, c *app.RequestContext) {
	c.Data(http.StatusOK, "application/json", []byte(work.OK))
}

func (a api) sleep(ctx context.Context, c *app.RequestContext) {
	time.Sleep(work.Nap)
	a.ping(ctx, c)
}

func (api) order(_ context.Context, c *app.RequestContext) {
	id, err := work.ParseID(c.Query("id"))
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	c.JSON(http.StatusOK, work.NewOrder(id))
}

func (api) purchase(_ context.Context, c *app.RequestContext) {
	var p work.Purchase
	if err := c.BindJSON(&p); err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	receipt, err := p.Receipt()
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	c.JSON(http.StatusOK, receipt)
}

func (a api) find(_ context.Context, c *app.RequestContext) {
	ids, err := work.ParseIDs(nil, c.Query("ids"))
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	c.JSON(http.StatusOK, a.users.Find(ids))
}
