// Command echo is the peer "echo": the Recover middleware of its README without the
// RequestLogger, and its own StartConfig, whose timeouts are set in BeforeServeFunc, as the
// comments there have it. Its serializer is replaced by one that ends a document without a
// newline.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"pinion/bench/peers/work"
)

func main() { os.Exit(work.Run(serve)) }

func serve(ctx context.Context, c work.Config) error {
	return echo.StartConfig{
		Address: c.Addr, HideBanner: true, HidePort: true, GracefulTimeout: work.StopTimeout,
		BeforeServeFunc: func(s *http.Server) error {
			s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = work.ReadTimeout, work.WriteTimeout, work.IdleTimeout
			return nil
		},
	}.Start(ctx, newEcho(c.Users))
}

func newEcho(users *work.Store) *echo.Echo {
	a := api{users: users}
	e := echo.New()
	e.JSONSerializer = serializer{}
	e.Use(middleware.Recover())
	e.GET("/api/ping", a.ping)
	e.GET("/sleep", a.sleep)
	e.GET("/json", a.order)
	e.POST("/json", a.purchase)
	e.GET("/api/users", a.find)
	return e
}

type api struct{ users *work.Store }

func (api) ping(c *echo.Context) error {
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, []byte(work.OK))
}

func (a api) sleep(c *echo.Context) error {
	time.Sleep(work.Nap)
	return a.ping(c)
}

func (api) order(c *echo.Context) error {
	id, err := work.ParseID(c.QueryParam("id"))
	if err != nil {
		return echo.ErrBadRequest.Wrap(err)
	}
	return c.JSON(http.StatusOK, work.NewOrder(id))
}

func (api) purchase(c *echo.Context) error {
	var p work.Purchase
	if err := c.Bind(&p); err != nil {
		return err
	}
	receipt, err := p.Receipt()
	if err != nil {
		return echo.ErrBadRequest.Wrap(err)
	}
	return c.JSON(http.StatusOK, receipt)
}

func (a api) find(c *echo.Context) error {
	ids, err := work.ParseIDs(nil, c.QueryParam("ids"))
	if err != nil {
		return echo.ErrBadRequest.Wrap(err)
	}
	return c.JSON(http.StatusOK, a.users.Find(ids))
}

// serializer is echo's own but for the newline that json.Encoder writes. It says how long
// the body is, or net/http would send one over 2 KiB in chunks.
type serializer struct{ echo.DefaultJSONSerializer }

// Serialize implements echo.JSONSerializer. No peer indents.
func (serializer) Serialize(c *echo.Context, v any, _ string) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w := c.Response()
	w.Header().Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	_, err = w.Write(body)
	return err
}
