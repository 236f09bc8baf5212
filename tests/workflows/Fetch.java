// SPDX-License-Identifier: LGPL-2.1-or-later
import java.net.Authenticator;
import java.net.HttpURLConnection;
import java.net.PasswordAuthentication;
import java.net.URI;

/** Fetch URL: its status and body. With -Dtold, the proxy and its credential are taken from where other programs find them. */
public class Fetch {
    static void tell(URI proxy) {
        String[] credential = proxy.getUserInfo().split(":");
        System.setProperty("https.proxyHost", proxy.getHost());
        System.setProperty("https.proxyPort", Integer.toString(proxy.getPort()));
        System.setProperty("jdk.http.auth.tunneling.disabledSchemes", "");
        Authenticator.setDefault(new Authenticator() {
            @Override
            protected PasswordAuthentication getPasswordAuthentication() {
                return new PasswordAuthentication(credential[0], credential[1].toCharArray());
            }
        });
    }

    public static void main(String[] arguments) throws Exception {
        if (System.getProperty("told") != null)
            tell(URI.create(System.getenv("https_proxy")));
        HttpURLConnection c = (HttpURLConnection) URI.create(arguments[0]).toURL().openConnection();
        System.out.println(c.getResponseCode() + " " + new String(c.getInputStream().readAllBytes()));
    }
}
