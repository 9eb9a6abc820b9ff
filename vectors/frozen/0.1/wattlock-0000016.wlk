wattlock/v1
-> X25519 KUPTx3sHQ6V6MPniP+zJfnvpTuy+fRXcR1QHWm7wwSg
EsbWDkcAdWQO7UGhRPG0TnFR/KpogGH0eFFu5vrQq/w
=> data-key //yrrglDUn5pFmpHw1ifHw
xDj9tJPd16t804/ENAogerzuLn9LY0dt4FWXU6Xjg4EzdGu2rB9PG58Pg0EBJB3w

=> metadata nTsXl1cSKXmpVP4W2lyMBQ
+M1M0e+CNWC2akSYRVeqHrNDNZeFuM/K9n64mHoCGDk11ihN1hWmA9qobHfUirGs
/SUuiJkaoZ2BNbORCcPjM8MnjHO6yyx+rMrlKHZiNa8
--- CrH+g8cMsqOM76rZp5XxkfUrs+gXadWVbSYceFQEhxQ
Qà¶Eˆá	Á\,²=±_9H/9a·¿eG8ªQlI+*×—¶¤¨58ÔM6
|WÜh…“ì’'V˜
Waõ
aa²WžÛ·6	Á}o¼\jÿOümÍžÍ